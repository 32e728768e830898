import type { ChangeEvent } from "react";
import { useTranslation } from "react-i18next";
import { LabelledField } from "@/components/LabelledField";
import type { FormErrors } from "@/components/useFormErrors";
import { type AuthType, type ConnectionKind, type Entered, hasKey, NAME, type ToolConnection } from "./connections";

interface Fields {
  kind: ConnectionKind;
  known: ToolConnection | null;
  entered: Entered;
  commands: readonly string[][];
  change: (changed: Partial<Entered>) => void;
  errors: FormErrors;
}

/** The fields that the form shows, by their names in requests. */
export function fieldsOf(kind: ConnectionKind, known: ToolConnection | null, entered: Entered): string[] {
  const { auth, by } = entered;
  return [
    ...(known ? [] : ["name"]),
    { address: "url", command: "command", text: "document" }[by],
    ...(kind === "openapi" ? ["server", "hosts"] : []),
    ...(by === "command" ? [] : ["auth"]),
    ...(by !== "command" && ["header", "query", "secret"].includes(auth) ? ["authName"] : []),
    ...(by !== "command" && auth === "secret" ? ["secret"] : []),
    ...(by !== "command" && hasKey(auth) ? ["key"] : []),
  ];
}

/** Name, address and authentication of a connection. */
export function ConnectionFields(props: Fields) {
  const { t } = useTranslation();
  const { kind, known, entered } = props;
  const ways: Entered["by"][] =
    kind === "openapi" ? ["address", "text"] : props.commands.length > 0 ? ["address", "command"] : ["address"];
  const wrongName =
    entered.name !== "" && !NAME.test(entered.name) ? t("connections.nameWrong") : props.errors.at("name");
  return (
    <>
      {known ? null : (
        <LabelledField name={t("connections.name")} about={t("toolConnections.nameAbout")} error={wrongName} required>
          {(its) => <input {...its} {...textOf(props, "name", kind === "mcp" ? "wiki" : "petstore")} />}
        </LabelledField>
      )}
      {ways.length > 1 ? (
        <LabelledField name={t("toolConnections.by")}>
          {(its) => (
            <select
              {...its}
              value={entered.by}
              onChange={(event) => props.change({ by: event.target.value as Entered["by"] })}
            >
              {ways.map((way) => (
                <option key={way} value={way}>
                  {t(`toolConnections.ways.${way}`)}
                </option>
              ))}
            </select>
          )}
        </LabelledField>
      ) : null}
      <Source {...props} />
      {kind === "openapi" ? (
        <>
          <LabelledField
            name={t("toolConnections.server")}
            about={t("toolConnections.serverAbout")}
            error={props.errors.at("server")}
          >
            {(its) => <input {...its} {...textOf(props, "server", "https://api.example.com/v1")} />}
          </LabelledField>
          <LabelledField
            name={t("toolConnections.hosts")}
            about={t("toolConnections.hostsAbout")}
            error={props.errors.at("hosts")}
          >
            {(its) => <input {...its} {...textOf(props, "hosts", "api.example.com")} />}
          </LabelledField>
        </>
      ) : null}
      {entered.by === "command" ? null : <Authentication {...props} />}
    </>
  );
}

type TextField = "name" | "url" | "server" | "hosts" | "authName" | "secret";

const textOf = (props: Fields, field: TextField, example: string) => ({
  autoComplete: "off",
  spellCheck: false,
  placeholder: example,
  value: props.entered[field],
  onChange: (event: ChangeEvent<HTMLInputElement>) => props.change({ [field]: event.target.value }),
});

/** Where the server or the document is. */
function Source(props: Fields) {
  const { t } = useTranslation();
  const { kind, entered, change } = props;
  if (entered.by === "address")
    return (
      <LabelledField
        name={t(kind === "mcp" ? "connections.address" : "toolConnections.documentAddress")}
        about={t("connections.addressAbout")}
        error={props.errors.at("url")}
        required
      >
        {(its) => (
          <input
            {...its}
            {...textOf(
              props,
              "url",
              kind === "mcp" ? "https://mcp.example.com/mcp" : "https://api.example.com/openapi.json",
            )}
          />
        )}
      </LabelledField>
    );
  const field = entered.by === "command" ? "command" : "document";
  return (
    <LabelledField
      name={t(`toolConnections.${field}`)}
      about={
        field === "command"
          ? t("toolConnections.commandAbout", { commands: props.commands.map((one) => one.join(" ")).join(" · ") })
          : t(props.known ? "toolConnections.documentAgain" : "toolConnections.documentAbout")
      }
      error={props.errors.at(field)}
      required
    >
      {(its) => (
        <textarea
          {...its}
          rows={field === "command" ? 3 : 6}
          className={`${its.className} font-mono text-xs`}
          spellCheck={false}
          value={entered[field]}
          onChange={(event) => change({ [field]: event.target.value })}
        />
      )}
    </LabelledField>
  );
}

/** How calls are authenticated. */
function Authentication(props: Fields) {
  const { t } = useTranslation();
  const { kind, known, entered, change, errors } = props;
  const types: AuthType[] = ["none", "bearer", "header", ...(kind === "openapi" ? (["query"] as const) : []), "secret"];
  const { auth } = entered;
  const stays = known !== null && hasKey(known.auth);
  return (
    <>
      <LabelledField
        name={t("toolConnections.auth")}
        about={t(`toolConnections.authAbout.${auth}`)}
        error={errors.at("auth")}
      >
        {(its) => (
          <select {...its} value={auth} onChange={(event) => change({ auth: event.target.value as AuthType })}>
            {types.map((type) => (
              <option key={type} value={type}>
                {t(`toolConnections.auths.${type}`)}
              </option>
            ))}
          </select>
        )}
      </LabelledField>
      {auth === "header" || auth === "query" || auth === "secret" ? (
        <LabelledField
          name={t(auth === "query" ? "toolConnections.parameter" : "toolConnections.header")}
          error={errors.at("authName")}
          required={auth !== "secret"}
        >
          {(its) => (
            <input {...its} {...textOf(props, "authName", auth === "secret" ? "Authorization" : "X-API-Key")} />
          )}
        </LabelledField>
      ) : null}
      {auth === "secret" ? (
        <LabelledField name={t("toolConnections.secret")} error={errors.at("secret")} required>
          {(its) => <input {...its} {...textOf(props, "secret", "WIKI")} />}
        </LabelledField>
      ) : null}
      {hasKey(auth) ? (
        <LabelledField
          name={t(auth === "bearer" ? "toolConnections.token" : "toolConnections.key")}
          about={stays ? t("connections.keyStays") : undefined}
          error={errors.at("key")}
          required={!stays}
        >
          {(its) => (
            <input
              {...its}
              type="password"
              className={`${its.className} font-mono`}
              autoComplete="new-password"
              value={entered.key}
              onChange={(event) => change({ key: event.target.value })}
            />
          )}
        </LabelledField>
      ) : null}
    </>
  );
}
