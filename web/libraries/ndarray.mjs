export { default } from "ndarray";
