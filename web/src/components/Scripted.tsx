import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { ready } from "@/api/queries";
import { Chip } from "./Chip";
import { ConnectModel } from "./ConnectModel";

/** A banner on every page of a server where the scripted model answers all agents. */
export function ScriptedServer() {
  const { t } = useTranslation();
  const known = useQuery(ready);
  return (
    <p role="status" className="bg-waiting-soft px-4 py-2 text-waiting empty:hidden">
      {known.data?.model === "scripted" ? (
        <>
          {t("scripted.server")} <ConnectModel />
        </>
      ) : null}
    </p>
  );
}

/** A banner above output of the scripted model. */
export function ScriptedOutput(props: { scripted: boolean | undefined }) {
  const { t } = useTranslation();
  if (!props.scripted) return null;
  return (
    <p role="note" className="rounded-md bg-waiting-soft px-3 py-2 text-sm text-waiting">
      {t("scripted.output")} <ConnectModel />
    </p>
  );
}

/** A badge for an execution that used the scripted model. */
export function ScriptedBadge(props: { scripted: boolean | undefined }) {
  const { t } = useTranslation();
  if (!props.scripted) return null;
  return (
    <Chip look="careful" title={t("scripted.output")}>
      {t("scripted.badge")}
    </Chip>
  );
}
