/** The lists of the inbox besides open gates, as the address names them. */
export const LISTS = ["answered", "mentions"] as const;

export type InboxList = (typeof LISTS)[number];
