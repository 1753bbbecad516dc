// What editors of Python have in common: in the notebook's cells and in the documentation's blocks.
import {
  acceptCompletion,
  autocompletion,
  bracketMatching,
  closeBrackets,
  defaultKeymap,
  drawSelection,
  history,
  historyKeymap,
  indentMore,
  indentOnInput,
  indentUnit,
  keymap,
  Prec,
  startCompletion,
  tags,
} from "../../../libraries/blocks.mjs";

/** What is coloured, by a name for its colour. */
export const COLOURED = {
  comment: [tags.comment],
  string: [tags.string, tags.special(tags.string)],
  keyword: [tags.keyword, tags.operatorKeyword, tags.modifier, tags.self],
  number: [tags.number, tags.bool, tags.null],
};

/** Completes names where a word begins; elsewhere Tab indents. */
const tab = (view) => {
  const { main } = view.state.selection;
  const before = view.state.sliceDoc(Math.max(0, main.from - 1), main.from);
  return main.empty && /[\w.]/.test(before) ? startCompletion(view) : indentMore(view);
};

/**
 * Extensions of CodeMirror. `keys` go before all others; `complete(code, position)` resolves to
 * `[{ text, type, start }]`.
 */
export function editing(keys, complete) {
  const completing = async ({ state, pos }) => {
    const found = await complete(state.doc.toString(), pos);
    if (found.length === 0) return null;
    const options = found.map(({ text, type }) => ({ label: text, type }));
    return { from: found[0].start, options, validFor: /^\w*$/ };
  };
  const tabs = { key: "Tab", run: (view) => acceptCompletion(view) || tab(view) };
  return [
    Prec.highest(keymap.of([...keys, tabs])),
    keymap.of([...defaultKeymap, ...historyKeymap]),
    history(),
    drawSelection(),
    indentUnit.of("    "),
    indentOnInput(),
    bracketMatching(),
    closeBrackets(),
    autocompletion({ override: [completing], activateOnTyping: false, interactionDelay: 0 }),
  ];
}
