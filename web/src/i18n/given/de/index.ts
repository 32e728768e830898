import type { ServerTexts } from "../texts";
import builtIn from "./builtin.json";
import codes from "./codes.json";
import language from "./language.json";
import operations from "./operations.json";

const given: ServerTexts = { ...language, codes, operations, builtIn };
export default given;
