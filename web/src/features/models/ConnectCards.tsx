/** A card for each kind of provider, to connect it, and the choice of the default model. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { ready } from "@/api/queries";
import { Button } from "@/components/Button";
import { Chip } from "@/components/Chip";
import { Confirm } from "@/components/Confirm";
import { PageSection } from "@/components/DescriptionList";
import { LabelledField } from "@/components/LabelledField";
import { QueryResult } from "@/components/QueryResult";
import { ErrorMessage } from "@/components/StatusMessage";
import { SuggestionInput } from "@/components/SuggestionInput";
import { ConnectDialog } from "./ConnectDialog";
import { chooseDefault, disconnect, type ProviderKind, productName, providerKinds } from "./connections";
import type { Models, Provider } from "./models";

export function ConnectCards({ models }: { models: Models }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const kinds = useQuery(providerKinds());
  const [connecting, setConnecting] = useState<{ kind: ProviderKind; known: Provider | null } | null>(null);
  const [leaving, setLeaving] = useState<Provider | null>(null);
  const again = async () => {
    await client.invalidateQueries({ queryKey: ["models"] });
    await client.invalidateQueries(ready);
  };
  return (
    <>
      <PageSection title={t("connections.default")} about={t("connections.defaultAbout")}>
        <DefaultModel models={models} kinds={kinds.data?.kinds ?? []} onChosen={again} />
      </PageSection>
      <PageSection title={t("connections.title")} about={t("connections.about")}>
        <QueryResult query={kinds}>
          {(all) => (
            <ul className="grid grid-cols-[repeat(auto-fill,minmax(13rem,1fr))] gap-2">
              {all.kinds.flatMap((kind) => {
                const found = models.providers.filter((one) => one.kind === kind.kind && one.source === "app");
                const open = (known: Provider | null) => setConnecting({ kind, known });
                return [
                  ...found.map((one) => (
                    <ConnectedCard key={one.name} of={one} onChange={() => open(one)} onLeave={() => setLeaving(one)} />
                  )),
                  ...(found.length === 0 || kind.kind.startsWith("openai-compatible")
                    ? [<KindCard key={kind.kind} kind={kind} onConnect={() => open(null)} />]
                    : []),
                ];
              })}
            </ul>
          )}
        </QueryResult>
      </PageSection>
      {connecting ? (
        <ConnectDialog {...connecting} models={models} onConnected={again} onClose={() => setConnecting(null)} />
      ) : null}
      {leaving ? (
        <Confirm
          title={t("connections.disconnectNamed", { name: leaving.name })}
          about={t("connections.disconnectAbout")}
          confirmLabel={t("connections.disconnect")}
          action={() => disconnect(leaving).then(again)}
          onClose={() => setLeaving(null)}
        />
      ) : null}
    </>
  );
}

const CARD = "flex min-h-20 flex-col items-start gap-1 rounded-md border border-line bg-surface p-3";

function KindCard({ kind, onConnect }: { kind: ProviderKind; onConnect: () => void }) {
  const { t } = useTranslation();
  const product = productName(kind.kind, t);
  return (
    <li className={CARD}>
      <span className="font-medium">{product}</span>
      {kind.setBy ? (
        <span className="text-sm text-ink-soft">{t("connections.setBy", { source: kind.setBy })}</span>
      ) : kind.installed ? (
        <Button className="mt-auto" onClick={onConnect} aria-label={t("connections.connect", { product })}>
          {t("connections.connectShort")}
        </Button>
      ) : (
        <span className="text-sm text-ink-soft">{t("connections.missing", { how: kind.install })}</span>
      )}
    </li>
  );
}

function ConnectedCard(props: { of: Provider; onChange: () => void; onLeave: () => void }) {
  const { t } = useTranslation();
  const { name, kind, baseUrl } = props.of;
  return (
    <li className={`${CARD} border-accent/60`}>
      <span className="flex w-full flex-wrap items-center gap-2">
        <span className="font-medium">{name === kind ? productName(kind, t) : name}</span>
        <Chip look="good">{t("connections.connected")}</Chip>
      </span>
      {baseUrl ? <span className="text-sm text-ink-soft wrap-anywhere">{baseUrl}</span> : null}
      <span className="mt-auto flex flex-wrap gap-1">
        <Button onClick={props.onChange} aria-label={t("connections.changeNamed", { name })}>
          {t("connections.change")}
        </Button>
        <Button kind="mild" onClick={props.onLeave} aria-label={t("connections.disconnectNamed", { name })}>
          {t("connections.disconnect")}
        </Button>
      </span>
    </li>
  );
}

/** The default model and its source. Only one that was chosen here can be changed here. */
function DefaultModel(props: { models: Models; kinds: readonly ProviderKind[]; onChosen: () => Promise<void> }) {
  const { t } = useTranslation();
  const { models } = props;
  const [model, setModel] = useState(models.default ?? "");
  const choosing = useMutation({
    mutationFn: (name: string) => chooseDefault(name, models.defaultEtag),
    onSuccess: props.onChosen,
  });
  if (models.default !== null && models.defaultFrom !== "app")
    return (
      <p>
        <span className="font-mono">{models.default}</span>{" "}
        <span className="text-ink-soft">{t("connections.defaultFrom", { source: models.defaultFrom })}</span>
      </p>
    );
  const suggestions = models.providers.flatMap((one) =>
    (props.kinds.find((kind) => kind.kind === one.kind)?.models ?? []).map((name) => ({
      name: `${one.name}:${name}`,
      about: "",
    })),
  );
  return (
    <form
      className="max-w-lg"
      onSubmit={(event) => {
        event.preventDefault();
        choosing.mutate(model);
      }}
    >
      {choosing.isError ? <ErrorMessage error={choosing.error} /> : null}
      <LabelledField name={t("connections.defaultModel")} about={t("connections.defaultNone")}>
        {(its) => (
          <span className="flex gap-2">
            <span className="flex-1">
              <SuggestionInput
                {...its}
                className={`${its.className} font-mono`}
                placeholder="openai:gpt-5-mini"
                value={model}
                suggestions={suggestions}
                onType={setModel}
                onChoose={setModel}
              />
            </span>
            <Button type="submit" disabled={model === (models.default ?? "") || choosing.isPending}>
              {t("connections.choose")}
            </Button>
          </span>
        )}
      </LabelledField>
    </form>
  );
}
