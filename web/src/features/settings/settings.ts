/** Queries and mutations of the settings, and the fields of their forms. */
import { queryOptions } from "@tanstack/react-query";
import { apiRequest, ifMatch } from "@/api/http";
import type { Json, JsonObject, Schemas } from "@/api/views";

export type Setting = Schemas["SettingView"];

export const settings = queryOptions({
  queryKey: ["settings"],
  queryFn: ({ signal }) => apiRequest<Schemas["SettingsView"]>("/api/settings", { signal }),
});

const at = (name: string) => `/api/settings/${encodeURIComponent(name)}`;

/** `known`: as it was read; the server refuses the change if it has changed since. */
export const changeSetting = (known: Setting, value: Json) =>
  apiRequest<Setting>(at(known.name), { method: "PUT", body: { value }, ...ifMatch(known.etag) });
export const resetSetting = (known: Setting) =>
  apiRequest<void>(at(known.name), { method: "DELETE", ...ifMatch(known.etag) });

export const isEntered = (one: Setting): boolean => one.etag !== "";
/** Whether an admin may change the setting here. */
export const isChangeable = (one: Setting): boolean => one.effect === "now" && one.fixedBy === "";

export const SECURITIES = ["starttls", "tls", "none"] as const;
export const PORTS = { starttls: 587, tls: 465, none: 25 } as const;

/** The fields of the mail server; lists are texts with one entry per line. */
export interface MailDraft {
  host: string;
  port: string;
  security: (typeof SECURITIES)[number];
  username: string;
  password: string;
  sender: string;
  recipients: string;
  requiresApproval: boolean;
}

/** The mail server in effect, without its password. */
export interface MailServer {
  host: string;
  port: number | null;
  security: MailDraft["security"];
  username: string;
  password: string;
  sender: string;
  recipients: string[];
  requires_approval: boolean;
}

export function mailDraft(known: MailServer | null): MailDraft {
  return {
    host: known?.host ?? "",
    port: known?.port ? String(known.port) : "",
    security: known?.security ?? "starttls",
    username: known?.username ?? "",
    password: "",
    sender: known?.sender ?? "",
    recipients: (known?.recipients ?? ["*"]).join("\n"),
    requiresApproval: known?.requires_approval ?? false,
  };
}

export const linesOf = (text: string): string[] =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);

const mailBody = (draft: MailDraft) => ({
  host: draft.host,
  ...(draft.port ? { port: Number(draft.port) } : {}),
  security: draft.security,
  username: draft.username,
  ...(draft.password ? { password: draft.password } : {}),
  sender: draft.sender,
  recipients: linesOf(draft.recipients),
  requiresApproval: draft.requiresApproval,
});

export const saveMailServer = (draft: MailDraft, known: Setting) =>
  apiRequest<Setting>("/api/settings/mail", { method: "PUT", body: mailBody(draft), ...ifMatch(known.etag) });
export const testMailServer = (draft: MailDraft, to: string) =>
  apiRequest<Schemas["TestedMail"]>("/api/settings/mail/test", { body: { ...mailBody(draft), to } });

export const STATUSES = ["completed", "failed", "cancelled"] as const;
type Rule = { age: string; count: string };
export type RetentionDraft = Record<(typeof STATUSES)[number], Rule>;

/** A rule as documents may state it: an age, a number, or both. */
function ruleOf(value: Json | undefined): Rule {
  if (typeof value === "string") return { age: value, count: "" };
  if (typeof value === "number") return { age: "", count: String(value) };
  const { age, count } = (value ?? {}) as JsonObject;
  return { age: typeof age === "string" ? age : "", count: typeof count === "number" ? String(count) : "" };
}

export function retentionDraft(value: Json): RetentionDraft {
  const known = (value ?? {}) as JsonObject;
  return {
    completed: ruleOf(known.completed),
    failed: ruleOf(known.failed),
    cancelled: ruleOf(known.cancelled),
  };
}

/** The rules of the form; those of single workflows stay as they are. */
export function retentionOf(draft: RetentionDraft, value: Json): JsonObject {
  const { workflows } = (value ?? {}) as JsonObject;
  const rules = STATUSES.flatMap((status) => {
    const { age, count } = draft[status];
    const rule = { ...(age.trim() ? { age: age.trim() } : {}), ...(count ? { count: Number(count) } : {}) };
    return Object.keys(rule).length > 0 ? [[status, rule]] : [];
  });
  return { ...Object.fromEntries(rules), ...(workflows ? { workflows } : {}) };
}

export const variablesText = (value: Json): string =>
  Object.entries((value ?? {}) as JsonObject)
    .map(([name, text]) => `${name}=${text}`)
    .join("\n");

/** Lines `NAME=value`. A line without a value is an empty value. */
export function variablesOf(text: string): JsonObject {
  return Object.fromEntries(
    linesOf(text).map((line) => {
      const [name = "", ...rest] = line.split("=");
      return [name.trim(), rest.join("=").trim()];
    }),
  );
}
