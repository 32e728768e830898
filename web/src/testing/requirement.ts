/** Name the promises of docs/reference/requirements.toml that the next test proves: `requirement("S1-145");` on the
 * line before `it(`. The table of promises is generated from these lines; at run time they do nothing. */
export function requirement(..._ids: string[]): void {}
