import type { ServerTexts } from "../texts";
import codes from "./codes.json";
import language from "./language.json";
import operations from "./operations.json";
import shelf from "./shelf.json";

const given: ServerTexts = { ...language, codes, operations, shelf };
export default given;
