import { byPart } from "../parts";

export default byPart(import.meta.glob<Record<string, unknown>>("./*.json", { eager: true, import: "default" }));
