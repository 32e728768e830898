import { useMutation, useQueryClient } from "@tanstack/react-query";
import { KeyRound } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { ApiError } from "@/api/http";
import { login } from "@/api/queries";
import type { Me } from "@/api/views";
import { Button } from "./Button";
import { Failed } from "./Told";

/** Asks for a key; the server answers with a cookie that no script can read. The key is kept nowhere. */
export function Login() {
  const { t } = useTranslation();
  const client = useQueryClient();
  const [key, setKey] = useState("");
  const enter = useMutation<Me, ApiError, string>({
    mutationFn: login,
    onSuccess: () => client.resetQueries(),
  });
  return (
    <form
      className="mx-auto mt-[12vh] max-w-sm rounded-lg border border-line bg-surface p-6"
      onSubmit={(event) => {
        event.preventDefault();
        enter.mutate(key.trim());
      }}
    >
      <h1 className="flex items-center gap-2 text-lg font-semibold">
        <KeyRound className="size-5 text-ink-faint" aria-hidden /> {t("login.title")}
      </h1>
      <p className="mt-1 text-ink-soft">{t("login.about")}</p>
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
      {enter.isError ? (
        <div className="mt-3">
          <Failed why={enter.error} />
        </div>
      ) : null}
      <Button kind="primary" type="submit" className="mt-4 w-full justify-center" disabled={!key || enter.isPending}>
        {t("login.enter")}
      </Button>
    </form>
  );
}
