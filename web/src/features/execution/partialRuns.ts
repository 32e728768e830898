/** Prefix of the ids of test runs. */
export const PARTIAL_RUN_PREFIX = "try-";
