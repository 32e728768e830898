/** The views below the graph of an execution, as the address names them. */
export const VIEWS = ["timeline", "costs", "events", "family", "outline", "comments"] as const;

export type View = (typeof VIEWS)[number];
