// For runtimes without pages; an argument is where the wheel is.
import { connect } from "dlpack-web";
import { found } from "./found.js";

console.log(await found(connect, { wheel: globalThis.process.argv[2] }));
