"use client";
import { connect, Tensor } from "dlpack-web";
import { fit } from "dlpack-web/exchange";
import { features } from "dlpack-web/features";
import { fromNdarray } from "dlpack-web/ndarray";
import { useEffect } from "react";
import { found } from "../found.js";

export default function Client() {
  useEffect(() => {
    globalThis.entries = [Tensor, fit, features, fromNdarray].map((each) => typeof each);
    globalThis.found = (options) => found(connect, options);
  }, []);
  return <p id="client">{`Tensor is a ${typeof Tensor}`}</p>;
}
