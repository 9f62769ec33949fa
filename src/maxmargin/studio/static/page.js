// @ts-check
import { openPage } from "./studio.js";

// Scripts and tests find the studio here.
openPage(document.getElementById("studio")).then((studio) => Object.assign(window, { maxmarginStudio: studio }));
