// What a user's page imports: entry points by their names.
import { connect } from "dlpack-web";
import { Tensor } from "dlpack-web/core";
import { fit } from "dlpack-web/exchange";
import { features } from "dlpack-web/features";
import { fromNdarray } from "dlpack-web/ndarray";
import { found } from "./found.js";

globalThis.entries = [Tensor, fit, features, fromNdarray].map((each) => typeof each);
globalThis.found = (options) => found(connect, options);
