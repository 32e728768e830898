/** All boxes are alike: so nothing has to be measured, and a layout is made where there is no page. */
export const BOX = { width: 208, height: 60 } as const;
