// Draws losses as a curve on a canvas, in the colours of the page, as sharp as the screen is.

const MARGIN = { left: 44, right: 12, top: 12, bottom: 34 };
const NARROW = 400; // pixels across, where fewer labels fit

/**
 * @param canvas - its `color` is that of the curve, the figure's that of the axes
 * @param losses - one for each step so far
 * @param of - steps of the whole training
 */
export function drawCurve(canvas, losses, of) {
  const { clientWidth, clientHeight } = canvas;
  const sharp = devicePixelRatio;
  canvas.width = Math.round(clientWidth * sharp);
  canvas.height = Math.round(clientHeight * sharp);
  const context = canvas.getContext("2d");
  context.scale(sharp, sharp);
  const across = clientWidth - MARGIN.left - MARGIN.right;
  const ground = clientHeight - MARGIN.bottom;
  const most = Math.max(1, Math.ceil(Math.max(0, ...losses)));
  const x = (step) => MARGIN.left + (across * step) / of;
  const y = (loss) => ground - ((ground - MARGIN.top) * loss) / most;
  const style = getComputedStyle(canvas.parentElement);
  context.fillStyle = style.color;
  context.font = `13px ${style.fontFamily}`;
  const ticks = across < NARROW ? 2 : 4;
  for (let tick = 0; tick <= ticks; tick++) {
    const [step, loss] = [(of * tick) / ticks, (most * tick) / ticks];
    context.textBaseline = "top";
    context.textAlign = tick === ticks ? "right" : "center";
    context.fillText(tick === ticks ? `${step} steps` : step, x(step), ground + 9);
    context.fillRect(x(step), ground, 1, 5);
    context.textBaseline = "middle";
    context.textAlign = "right";
    context.fillText(loss.toFixed(2), MARGIN.left - 8, y(loss));
    context.globalAlpha = tick === 0 ? 1 : 0.2;
    context.fillRect(MARGIN.left, y(loss), across, 1);
    context.globalAlpha = 1;
  }
  context.strokeStyle = getComputedStyle(canvas).color;
  context.lineWidth = 2;
  context.lineJoin = "round";
  context.beginPath();
  losses.forEach((loss, i) => {
    context.lineTo(x(i + 1), y(loss));
  });
  context.stroke();
}
