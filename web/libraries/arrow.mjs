export * from "apache-arrow";
