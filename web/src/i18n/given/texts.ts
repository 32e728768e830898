/** Shape of the translations of what the server writes in English. */
export interface ServerTexts {
  /** Sentences of the schema of definitions, as they stand there. */
  about: Record<string, string>;
  /** What can be chosen in a field, by its name and the value. */
  choices: Record<string, Record<string, string>>;
  /** What an error, a problem or a failure of this code means. */
  codes: Record<string, string>;
  /** What an operation of the server does, as its document says it. */
  operations: Record<string, string>;
  /** What the workflows that come along ask whoever starts them. */
  shelf: Record<string, string>;
}
