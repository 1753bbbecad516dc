// The photograph with the digits that were read in it; wrong ones stand out.

/** The digits that were read as others: rows and columns count from 1. */
export function wrongOnes(labels, { labels: truth, columns }) {
  return [...labels].flatMap((read, i) =>
    read === truth[i]
      ? []
      : [
          {
            row: Math.floor(i / columns) + 1,
            column: (i % columns) + 1,
            read,
            truth: truth[i],
          },
        ],
  );
}

/** Draws the photograph; over each digit what was read, the surer the stronger. */
export function drawDigits(canvas, { pixels, width, height }, facts, labels = [], scores = []) {
  const { rows, columns } = facts;
  const context = Object.assign(canvas, { width, height }).getContext("2d");
  context.putImageData(new ImageData(new Uint8ClampedArray(pixels.buffer), width, height), 0, 0);
  const [w, h] = [width / columns, height / rows];
  context.textBaseline = "top";
  context.textAlign = "right";
  const write = (text, x, y, size, colour) => {
    context.font = `700 ${size}px system-ui, "DejaVu Sans", sans-serif`;
    context.lineWidth = 3;
    context.strokeStyle = "#fff";
    context.strokeText(text, x, y);
    context.fillStyle = colour;
    context.fillText(text, x, y);
  };
  labels.forEach((label, i) => {
    const [x, y] = [((i % columns) + 1) * w - 2, Math.floor(i / columns) * h + 2];
    context.globalAlpha = 0.35 + 0.65 * scores[i];
    if (label === facts.labels[i]) write(label, x, y, 0.36 * h, "#0b6e69");
  });
  context.globalAlpha = 1;
  for (const { row, column, read, truth } of wrongOnes(labels, facts)) {
    const [x, y] = [(column - 1) * w, (row - 1) * h];
    context.lineWidth = 3;
    context.strokeStyle = "#b3261e";
    context.strokeRect(x + 1.5, y + 1.5, w - 3, h - 3);
    write(`✗${read}`, x + w - 4, y + 3, 0.34 * h, "#b3261e");
    write(`is ${truth}`, x + w - 4, y + 0.68 * h, 0.26 * h, "#0b6e69");
  }
}

/** How well the digits were read, and how well the network does otherwise. */
export function describeReading(labels, right, facts, accuracy) {
  return (
    `${Math.round(right * labels.length)} of ${labels.length} digits are read correctly; of the ` +
    `${facts.tested_on} test digits the network reads ${(100 * accuracy).toFixed(1)} % correctly.`
  );
}
