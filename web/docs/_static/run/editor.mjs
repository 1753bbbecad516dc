// The editor of a block, in a shadow tree: there its styles are sheets that the page's policy
// allows, and none of the theme's reach it.
import {
  EditorState,
  EditorView,
  HighlightStyle,
  indentLess,
  keymap,
  python,
  syntaxHighlighting,
} from "../../../libraries/blocks.mjs";
import { COLOURED, editing } from "./editing.mjs";

// Colours are the page's (docs.css), which change with its theme.
const COLOURS = HighlightStyle.define(
  Object.entries(COLOURED).map(([name, tag]) => ({ tag, color: `var(--code-${name})` })),
);
const LOOK = EditorView.theme({
  "&": { font: "inherit", color: "var(--color-foreground-primary)", outline: "none" },
  ".cm-scroller": { font: "inherit", lineHeight: "inherit" },
  ".cm-content": { padding: "0.625rem 0.5rem", caretColor: "currentColor" },
  ".cm-cursor": { borderLeftColor: "currentColor" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": {
    background: "var(--code-selection) !important",
  },
  ".cm-tooltip": {
    border: "1px solid var(--color-background-border)",
    background: "var(--color-background-secondary)",
    color: "var(--color-foreground-primary)",
  },
});

/**
 * What is typed over a selection is ours to do: the browser would keep the style of what was there,
 * in an attribute that the policy forbids. Brackets and quotes go around it (closeBrackets).
 */
const overwrite = EditorView.domEventHandlers({
  beforeinput(event, view) {
    const { inputType, data } = event;
    if (inputType !== "insertText" || !data || view.composing) return false;
    if (view.state.selection.main.empty || /^[([{'"]$/.test(data)) return false;
    event.preventDefault();
    view.dispatch(view.state.replaceSelection(data), { userEvent: "input.type" });
    return true;
  },
});

/** An EditorView in `place`; `block` has run(), changed() and complete(code, position). */
export function makeEditor(place, source, label, { run, changed, complete }) {
  const root = place.attachShadow({ mode: "open" });
  // Keys are the editor's: the theme's, such as / for the search, would not see that it has them.
  place.addEventListener("keydown", (event) => event.stopPropagation());
  const parent = root.appendChild(document.createElement("div"));
  const runs = () => {
    run();
    return true;
  };
  const leave = ({ contentDOM }) => {
    contentDOM.blur(); // then Tab goes on to the buttons
    place.parentElement.querySelector(".run").focus();
    return true;
  };
  const keys = [
    { key: "Mod-Enter", run: runs },
    { key: "Shift-Enter", run: runs },
    { key: "Shift-Tab", run: indentLess },
  ];
  const extensions = [
    editing(keys, complete),
    keymap.of([{ key: "Escape", run: leave }]),
    python(),
    syntaxHighlighting(COLOURS),
    LOOK,
    overwrite,
    EditorView.contentAttributes.of({ "aria-label": label }),
    EditorView.updateListener.of(({ docChanged }) => docChanged && changed()),
  ];
  return new EditorView({
    parent,
    root,
    state: EditorState.create({ doc: source, extensions }),
  });
}
