/** The script of `dlpack_web_page.widget.Page` itself, which shows what the kernel draws. */
import { widget } from "./index.js";

export default widget({});
