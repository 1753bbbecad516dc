/** What a first session loads. */
export { findOrt } from "./finding.js";
export { Library } from "./sessions.js";
