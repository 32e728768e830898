/** The shape of the translations of the server's English texts. */
export interface ServerTexts {
  /** Descriptions in the schema of definitions; the key is the English sentence. */
  about: Record<string, string>;
  /** Labels of the choices of a field, by field name and value. */
  choices: Record<string, Record<string, string>>;
  /** Explanations of errors, problems and failures, by code. */
  codes: Record<string, string>;
  /** Summaries of operations, as in the OpenAPI document. */
  operations: Record<string, string>;
  /** Descriptions of the inputs of built-in workflows. */
  builtIn: Record<string, string>;
}
