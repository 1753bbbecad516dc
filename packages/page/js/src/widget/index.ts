/** Widgets whose script gets tensors from a kernel: `dlpack_web_page.widget`. */
// Importing only this gives tensors all their methods: the layers register themselves.
import "dlpack-web/exchange";

export {
  type Author,
  type Cleanup,
  type InitializeProps,
  type Lifecycle,
  type Model,
  type RenderProps,
  widget,
} from "./author.js";
export type { TensorListener, Tensors } from "./tensors.js";
