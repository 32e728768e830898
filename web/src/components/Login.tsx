import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { KeyRound, LogIn } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { ApiError } from "@/api/http";
import { login, loginOptions } from "@/api/queries";
import type { Me } from "@/api/views";
import { Button } from "./Button";
import { ErrorMessage } from "./StatusMessage";

const PAGE = "/login";

/** Log in with a key or through the identity provider. The server answers with a cookie that no script can read; the
 * page does not store the key. */
export function Login() {
  const { t } = useTranslation();
  const client = useQueryClient();
  const navigate = useNavigate();
  const options = useQuery(loginOptions());
  const [key, setKey] = useState("");
  const parameters = new URLSearchParams(location.search);
  const here = location.pathname === PAGE;
  const to = here ? (parameters.get("to") ?? "/workflows") : location.pathname + location.search;
  const reason = here ? parameters.get("why") : null;
  const provider = options.data?.provider;
  const logIn = useMutation<Me, ApiError, string>({
    mutationFn: login,
    onSuccess: async () => {
      if (here) await navigate({ href: /^\/(?![/\\])/.test(to) ? to : "/", replace: true });
      await client.resetQueries();
    },
  });
  return (
    <div className="mx-auto mt-[12vh] max-w-sm px-4">
      <form
        className="rounded-lg border border-line bg-surface p-6"
        onSubmit={(event) => {
          event.preventDefault();
          logIn.mutate(key.trim());
        }}
      >
        <h1 className="flex items-center gap-2 text-lg font-semibold">
          <KeyRound className="size-5 text-ink-faint" aria-hidden /> {t("login.title")}
        </h1>
        <p className="mt-1 text-ink-soft">{t(provider ? "login.aboutBoth" : "login.about")}</p>
        {reason ? (
          <p role="alert" className="mt-3 rounded-md border border-failed/40 bg-failed-soft p-3 text-failed">
            {t([`login.why.${reason}`, "login.why.other"])}
          </p>
        ) : null}
        {provider ? (
          <>
            <a
              href={`${provider.address}?to=${encodeURIComponent(to)}`}
              className="mt-4 flex h-9 w-full items-center justify-center gap-2 rounded-md bg-accent px-3 font-medium text-on-accent hover:brightness-90"
            >
              <LogIn className="size-4" aria-hidden /> {t("login.with", { provider: provider.name })}
            </a>
            <p className="mt-5 flex items-center gap-3 text-xs text-ink-faint before:h-px before:flex-1 before:bg-line after:h-px after:flex-1 after:bg-line">
              {t("login.or")}
            </p>
          </>
        ) : null}
        <label className="mt-4 block font-medium">
          {t("login.key")}
          <input
            type="password"
            autoComplete="current-password"
            value={key}
            onChange={(event) => setKey(event.target.value)}
            className="mt-1 h-9 w-full rounded-md border border-line-strong bg-surface px-2 font-mono"
          />
        </label>
        {logIn.isError ? (
          <div className="mt-3">
            <ErrorMessage error={logIn.error} />
          </div>
        ) : null}
        <Button
          kind={provider ? "plain" : "primary"}
          type="submit"
          className="mt-4 h-9 w-full justify-center"
          disabled={!key || logIn.isPending}
        >
          {t("login.enter")}
        </Button>
      </form>
    </div>
  );
}
