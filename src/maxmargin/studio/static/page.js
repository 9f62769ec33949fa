// @ts-check
import { openPage } from "/studio.js";

openPage(document.getElementById("studio"));
