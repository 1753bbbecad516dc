// What blocks of the documentation are made of: the editor, colours of terminals.
export {
  acceptCompletion,
  autocompletion,
  closeBrackets,
  startCompletion,
} from "@codemirror/autocomplete";
export {
  defaultKeymap,
  history,
  historyKeymap,
  indentLess,
  indentMore,
} from "@codemirror/commands";
export { python } from "@codemirror/lang-python";
export {
  bracketMatching,
  HighlightStyle,
  indentOnInput,
  indentUnit,
  syntaxHighlighting,
} from "@codemirror/language";
export { EditorState, Prec } from "@codemirror/state";
export { drawSelection, EditorView, keymap } from "@codemirror/view";
export { tags } from "@lezer/highlight";
export { AnsiUp } from "ansi_up";
