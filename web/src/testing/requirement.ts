/**
 * Says which promises of docs/reference/requirements.toml the next test proves: `requirement("S1-145");` on the line
 * before `it(`. The table of promises reads these lines; at run time they do nothing.
 */
export function requirement(..._ids: string[]): void {}
