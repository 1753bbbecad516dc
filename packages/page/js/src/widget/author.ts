/** Widgets that authors write over this one: anywidget's form, with tensors. */
import type { AbortSignal, HTMLElement } from "../globals.js";
import { Page } from "./page.js";
import type { Tensors } from "./tensors.js";

/** Anywidget's model: the traits of the Python object. Those of `@anywidget/types` fit, too. */
export interface Model {
  // biome-ignore lint/suspicious/noExplicitAny: a trait has any type
  get(name: string): any;
  set(name: string, value: unknown): void;
  save_changes(): void;
  send(content: unknown, callbacks?: unknown, buffers?: readonly ArrayBuffer[]): void;
  // biome-ignore lint/suspicious/noExplicitAny: the arguments depend on the event
  on(event: string, listener: (...args: any[]) => void): void;
  // biome-ignore lint/suspicious/noExplicitAny: as above
  off(event: string, listener: (...args: any[]) => void): void;
}

/** What anywidget passes, and the tensors. */
export interface InitializeProps {
  readonly model: Model;
  /** The tensors that Python shows to this widget. */
  readonly tensors: Tensors;
  /** Aborted at the end of the widget, or of the view. Older versions of anywidget have none. */
  readonly signal?: AbortSignal;
}

export interface RenderProps extends InitializeProps {
  /** The element of the view. */
  readonly el: HTMLElement;
}

/** Nothing, or a function that anywidget calls at the end. */
export type Cleanup = undefined | (() => unknown);
// biome-ignore lint/suspicious/noConfusingVoidType: what functions without a result return
type MayCleanUp = void | Cleanup | Promise<void | Cleanup>;

/** A widget as its author writes it; both methods are anywidget's. */
export interface Author {
  /**
   * Is called once in each page, before the views.
   *
   * @param props - the `model`, and the `tensors`
   * @returns what ends it, if anything does
   */
  initialize?(props: InitializeProps): MayCleanUp;
  /**
   * Is called for each view.
   *
   * @param props - the same, and the element `el`
   * @returns what ends the view, if anything does
   */
  render?(props: RenderProps): MayCleanUp;
}

/** What anywidget calls for a widget: once in each page, and for each of its views. */
export interface Lifecycle {
  initialize(props: { model: Model }): Promise<() => Promise<void>>;
  render(props: { model: Model; el: HTMLElement }): Promise<() => Promise<void>>;
}

/**
 * A widget that lends its page's GPU to Python, as `dlpack_web_page.widget.Page` does, and gets tensors
 * by name.
 *
 * ```js
 * import { widget } from "dlpack-web-page/widget";
 *
 * export default widget({
 *   render({ el, tensors }) {
 *     return tensors.watch("points", (points) => {
 *       el.textContent = points ? `points of shape ${points.shape}` : "no points";
 *     });
 *   },
 * });
 * ```
 *
 * Bundle it into one file, and make that the `_esm` of a subclass of `Page`. In Python
 * `page.tensors["points"] = t` shows a tensor. A line at the top of each view reports why there is
 * no GPU, while there is none.
 *
 * @param author - both methods may be left out; or a function that gives them for each model
 * @returns what a module exports as default
 */
export function widget(author: Author | (() => Author | Promise<Author>)): () => Lifecycle {
  return () => {
    const own = Promise.resolve(typeof author === "function" ? author() : author);
    const page = new Page();
    const { shown: tensors } = page.tensors;
    let begun: Promise<() => Promise<void>> | undefined;

    async function begin(props: { model: Model }): Promise<() => Promise<void>> {
      const it = await own;
      page.isQuiet = it.render !== undefined;
      const end = page.start(props.model);
      return ending(end, () => it.initialize?.({ ...props, tensors }));
    }

    return {
      initialize: (props) => (begun ??= begin(props)),
      async render(props) {
        begun ??= begin(props); // hosts without initialize()
        await begun;
        const hide = page.show(props.el);
        const it = await own;
        return ending(hide, () => it.render?.({ ...props, tensors }));
      },
    };
  };
}

/** Runs what may clean up; the result does that and calls `end`, which an error calls, too. */
async function ending(end: () => void, run: () => MayCleanUp): Promise<() => Promise<void>> {
  try {
    const cleanup = await run();
    return async () => {
      try {
        await cleanup?.();
      } finally {
        end();
      }
    };
  } catch (error) {
    end();
    throw error;
  }
}
