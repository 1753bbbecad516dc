/** The script of `dlpack_web.widget.Page` itself, which shows what the kernel draws. */
import { widget } from "./index.js";

export default widget({});
