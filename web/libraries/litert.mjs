export * from "@litertjs/core";
