import { useMutation } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import { Page } from "@/components/Page";
import { ErrorMessage, Loading } from "@/components/StatusMessage";
import { completeAuthorization } from "./credentials";

/** The page to which a service sends the browser after a login: completes the connection of a credential. The code is
 * removed from the address at once, so that it stays in no history. */
export function ConnectedPage() {
  const { t } = useTranslation();
  const { name } = useParams({ from: "/connected/$name" });
  const [sent] = useState(() => new URLSearchParams(window.location.search));
  const [code, state] = [sent.get("code") ?? "", sent.get("state") ?? ""];
  const completing = useMutation({ mutationFn: () => completeAuthorization(name, code, state) });
  const { mutate } = completing;
  useEffect(() => {
    window.history.replaceState(window.history.state, "", window.location.pathname);
    if (code && state) mutate();
  }, [code, state, mutate]);
  return (
    <Page title={t("credentials.connecting", { name })}>
      {!code || !state ? (
        <p role="alert">{t("credentials.declined")}</p>
      ) : completing.isError ? (
        <ErrorMessage error={completing.error} />
      ) : completing.isSuccess ? (
        <p role="status">{t("credentials.done", { name })}</p>
      ) : (
        <Loading />
      )}
      <p className="mt-4">
        <Link to="/secrets" className="underline">
          {t("credentials.back")}
        </Link>
      </p>
    </Page>
  );
}
