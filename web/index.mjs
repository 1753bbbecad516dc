// The entry page only says whether the demos can run in this browser.
import { publish, webgpuProblem } from "./support.mjs";

const problem = await webgpuProblem();
document.querySelector("#support").textContent = problem ?? "This browser can run every demo.";
publish({ page: "index", ok: problem === null, problem });
