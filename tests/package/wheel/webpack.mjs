// webpack.mjs FOLDER: page.js as webpack makes it, with the configuration of bundlers.md.
import webpack from "webpack";

const [, , path] = process.argv;
const options = {
  mode: "production",
  context: process.cwd(),
  entry: "./page.js",
  output: { path },
  performance: { assetFilter: (file) => !file.endsWith(".whl") },
};
webpack(options, (error, stats) => {
  const { errors, warnings } = stats?.toJson({ all: false, errors: true, warnings: true }) ?? {};
  if (error || errors.length > 0 || warnings.length > 0) throw error ?? [...errors, ...warnings][0];
});
