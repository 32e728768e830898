/** The lists of the inbox besides open gates, as the address names them. */
export const LISTS = ["answered"] as const;

export type InboxList = (typeof LISTS)[number];
