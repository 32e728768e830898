import type { Given } from "../../given";
import codes from "./codes.json";
import language from "./language.json";
import operations from "./operations.json";
import shelf from "./shelf.json";

const given: Given = { ...language, codes, operations, shelf };
export default given;
