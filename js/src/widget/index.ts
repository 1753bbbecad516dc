/** The script of `dlpack_web.widget.Page` for anywidget: the page lends its GPU to the kernel. */
// Importing only this gives tensors all their methods: the layers register themselves.
import "../exchange/index.js";
import "../webgpu/transfer.js";
import { type Model, Page } from "./page.js";

export type { Model };

/** What anywidget calls for a widget, once in each page, and for each of its views. */
export interface Lifecycle {
  initialize(props: { model: Model }): () => void;
  render(props: { model: Model; el: HTMLElement }): () => void;
}

/** Anywidget's form of a widget whose views share something. */
export default function widget(): Lifecycle {
  const page = new Page();
  return {
    initialize: ({ model }) => page.start(model),
    render({ model, el }) {
      page.start(model); // hosts without initialize()
      return page.show(el);
    },
  };
}
