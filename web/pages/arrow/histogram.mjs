// Draws a histogram on a canvas, in the colours of the page, as sharp as the screen is.

const MARGIN = { left: 12, right: 12, top: 12, bottom: 34 };
const TICKS = 6;

/**
 * @param canvas - its `color` is that of the bars, the figure's that of the axis
 * @param histogram - `counts` of bins of `width` from `low` to `high`, in a `unit`
 */
export function drawHistogram(canvas, { counts, low, high, width, unit }) {
  const { clientWidth, clientHeight } = canvas;
  const sharp = devicePixelRatio;
  canvas.width = Math.round(clientWidth * sharp);
  canvas.height = Math.round(clientHeight * sharp);
  const context = canvas.getContext("2d");
  context.scale(sharp, sharp);
  const across = clientWidth - MARGIN.left - MARGIN.right;
  const up = clientHeight - MARGIN.top - MARGIN.bottom;
  const ground = clientHeight - MARGIN.bottom;
  const most = Math.max(1, ...counts);
  const at = (value) => MARGIN.left + (across * (value - low)) / (high - low);
  context.fillStyle = getComputedStyle(canvas).color;
  counts.forEach((count, i) => {
    const left = at(low + i * width);
    const tall = (up * count) / most;
    const wide = at(low + (i + 1) * width) - left;
    context.fillRect(left, ground - tall, Math.max(wide - (wide > 3 ? 1 : 0.2), 0.5), tall);
  });
  const style = getComputedStyle(canvas.parentElement);
  context.fillStyle = style.color;
  context.fillRect(MARGIN.left, ground, across, 1);
  context.font = `13px ${style.fontFamily}`;
  context.textBaseline = "top";
  for (let tick = 0; tick <= TICKS; tick++) {
    const value = low + ((high - low) * tick) / TICKS;
    const text = `${Math.round(value * 10) / 10}${tick === TICKS ? ` ${unit}` : ""}`;
    context.textAlign = tick === 0 ? "left" : tick === TICKS ? "right" : "center";
    context.fillRect(at(value), ground, 1, 5);
    context.fillText(text, at(value), ground + 9);
  }
}
