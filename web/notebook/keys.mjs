// The keys of a cell that has the keyboard, and not its editor: Jupyter's.
const KEYS = {
  Enter: "edit",
  "Shift+Enter": "run-next",
  "Control+Enter": "run",
  "Meta+Enter": "run",
  "Alt+Enter": "run-insert",
  "Control+s": "save",
  "Meta+s": "save",
  ArrowUp: "up",
  ArrowDown: "down",
  "Alt+ArrowUp": "move-up",
  "Alt+ArrowDown": "move-down",
  k: "up",
  j: "down",
  a: "above",
  b: "below",
  "d d": "delete",
  z: "undo",
  x: "cut",
  c: "copy",
  v: "paste",
  m: "text",
  y: "code",
  "i i": "interrupt",
  "0 0": "restart",
  h: "help",
};

let last = { key: "", at: 0 };

/** The command that a key stands for, perhaps with the key before it; undefined for none. */
export function commandOf(event) {
  const { key, timeStamp } = event;
  const modifier = ["Shift", "Control", "Meta", "Alt"].find((name) => event.getModifierState(name));
  const twice = !modifier && last.key === key && timeStamp - last.at < 800;
  const name =
    KEYS[modifier ? `${modifier}+${key}` : key] ?? (twice ? KEYS[`${key} ${key}`] : undefined);
  last = { key: name ? "" : key, at: timeStamp };
  return name;
}
