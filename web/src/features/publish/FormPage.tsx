import { useMutation, useQuery } from "@tanstack/react-query";
import { Link, useLocation } from "@tanstack/react-router";
import { lazy, Suspense, useEffect, useId, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { ApiError } from "@/api/http";
import type { Json, JsonObject } from "@/api/views";
import { Button } from "@/components/Button";
import Markdown from "@/components/Markdown";
import { ErrorMessage, Loading } from "@/components/StatusMessage";
import { useTitle } from "@/components/useTitle";
import { uniqueId } from "@/uniqueId";
import { form, type Run, run, startRun } from "./publish";

const SchemaForm = lazy(() => import("@/forms/SchemaForm").then((part) => ({ default: part.SchemaForm })));

/** A published form, for people without an account: on a page of its own, or in a frame of another site. */
export function FormPage() {
  const { t } = useTranslation();
  const token = useLocation({ select: (at) => decodeURIComponent(at.pathname.split("/")[2] ?? "") });
  const known = useQuery(form(token));
  const [begun, setBegun] = useState<string | null>(null);
  const page = useReportedHeight();
  useTitle(known.data?.title ?? t("published.page"));
  const isOut = known.error instanceof ApiError && known.error.status === 401;
  return (
    <div ref={page} className="mx-auto max-w-xl space-y-4 p-4">
      {known.isPending ? <Loading /> : null}
      {isOut ? <LoginNeeded /> : known.isError ? <p role="alert">{t("published.gone")}</p> : null}
      {known.isSuccess ? (
        <>
          <h1 className="text-xl font-semibold wrap-anywhere">{known.data.title}</h1>
          {known.data.text ? (
            <p className="whitespace-pre-line text-ink-soft wrap-anywhere">{known.data.text}</p>
          ) : null}
          {begun === null ? (
            <InputForm token={token} schema={known.data.input as JsonObject} onBegun={setBegun} />
          ) : (
            <RunProgress token={token} name={begun} thanks={known.data.thanks} onAgain={() => setBegun(null)} />
          )}
        </>
      ) : null}
    </div>
  );
}

export function LoginNeeded() {
  const { t } = useTranslation();
  return (
    <p role="alert">
      {t("published.login")}{" "}
      <Link to="/login" className="underline">
        {t("published.toLogin")}
      </Link>
    </p>
  );
}

function InputForm(props: { token: string; schema: JsonObject; onBegun: (run: string) => void }) {
  const { t } = useTranslation();
  const id = useId();
  // One key per form: a double click starts one execution.
  const [key] = useState(uniqueId);
  const [input, setInput] = useState<Json>({});
  const starting = useMutation({
    mutationFn: (given: Json) => startRun(props.token, given, key),
    onSuccess: (started) => props.onBegun(started.run),
  });
  return (
    <Suspense fallback={<Loading />}>
      {starting.isError ? <ErrorMessage error={starting.error} /> : null}
      <SchemaForm
        schema={props.schema}
        value={input}
        onChange={setInput}
        onSubmit={(given) => starting.mutate(given)}
        id={id}
        busy={starting.isPending}
      />
      <Button kind="primary" type="submit" form={id} disabled={starting.isPending}>
        {t("published.send")}
      </Button>
    </Suspense>
  );
}

function RunProgress(props: { token: string; name: string; thanks: string; onAgain: () => void }) {
  const { t } = useTranslation();
  const known = useQuery(run(props.token, props.name));
  if (known.isError) return <ErrorMessage error={known.error} />;
  const state = known.data;
  if (state === undefined || state.status === "running")
    return <div role="status">{state?.waiting ? <p>{t("published.waiting")}</p> : <Loading />}</div>;
  return (
    <div role="status" className="space-y-3">
      <p>{state.status === "completed" ? props.thanks || t("published.done") : t("published.failed")}</p>
      <RunOutput of={state} />
      <Button onClick={props.onAgain}>{t("published.again")}</Button>
    </div>
  );
}

/** The output: a text as Markdown; the fields of an object one below the other. */
function RunOutput({ of }: { of: Run }) {
  const output = of.output as Json;
  if (output === null || output === undefined) return null;
  if (typeof output !== "object" || Array.isArray(output)) return <OutputValue value={output} />;
  return (
    <dl className="space-y-2">
      {Object.entries(output).map(([name, value]) => (
        <div key={name}>
          <dt className="text-sm font-medium text-ink-soft">{name}</dt>
          <dd>
            <OutputValue value={value as Json} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

function OutputValue({ value }: { value: Json }) {
  if (typeof value === "string") return <Markdown text={value} />;
  return <pre className="overflow-auto rounded-md bg-sunken p-3 text-xs">{JSON.stringify(value, null, 2)}</pre>;
}

/** In a frame: report the height of the content to the page around it, which sets that of the frame. */
function useReportedHeight() {
  const page = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = page.current;
    if (!element || window.parent === window) return;
    const seen = new ResizeObserver(() => window.parent.postMessage({ height: element.scrollHeight }, "*"));
    seen.observe(element);
    return () => seen.disconnect();
  }, []);
  return page;
}
