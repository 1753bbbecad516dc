import { connect } from "dlpack-web";
import { found } from "./found.js";

found(connect, {}).then((told) => postMessage(told));
