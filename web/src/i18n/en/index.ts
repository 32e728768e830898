/** The texts of the language, one file per feature. Top-level keys must be unique across files. */
export default Object.assign(
  {},
  ...Object.values(import.meta.glob<Record<string, unknown>>("./*.json", { eager: true, import: "default" })),
) as Record<string, unknown>;
