export * from "zarrita";
