// Starts Python first of all: it takes longer to load than the rest of the page.
import { Kernel } from "../docs/_static/run/kernel.mjs";

export const kernel = new Kernel();
kernel.restart();
