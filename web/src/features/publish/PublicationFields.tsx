import { type ReactNode, useId } from "react";
import { useTranslation } from "react-i18next";
import { LabelledField } from "@/components/LabelledField";
import type { Draft } from "./publish";

interface Fields {
  draft: Draft;
  change: (part: Partial<Draft>) => void;
}

type TextName = "title" | "text" | "thanks" | "greeting" | "suggestions" | "origins";
const LABELS = {
  title: "heading",
  text: "text",
  thanks: "thanks",
  greeting: "greeting",
  suggestions: "suggestions",
  origins: "origins",
} as const;

export function FormFields({ draft, change }: Fields) {
  const { t } = useTranslation();
  return (
    <Indented>
      <TextField name="thanks" draft={draft} change={change} />
      <Check label={t("publish.output")} isOn={draft.output} onChange={(output) => change({ output })} />
    </Indented>
  );
}

export function ChatFields({ draft, change }: Fields) {
  return (
    <Indented>
      <TextField name="greeting" draft={draft} change={change} />
      <TextField name="suggestions" draft={draft} change={change} />
    </Indented>
  );
}

/** The fields that both pages have. */
export function SharedFields({ draft, change, name }: Fields & { name: string }) {
  const { t } = useTranslation();
  return (
    <>
      <TextField name="title" draft={draft} change={change} placeholder={name} />
      <TextField name="text" draft={draft} change={change} />
      <TextField name="origins" draft={draft} change={change} placeholder="https://www.example.com" />
      <Check label={t("publish.login")} isOn={draft.login} onChange={(login) => change({ login })} />
    </>
  );
}

function Indented({ children }: { children: ReactNode }) {
  return <div className="ml-6 space-y-4">{children}</div>;
}

function TextField({ name, draft, change, placeholder }: Fields & { name: TextName; placeholder?: string }) {
  const { t } = useTranslation();
  return (
    <LabelledField name={t(`publish.${LABELS[name]}`)} about={t(`publish.${LABELS[name]}About`)}>
      {(its) => {
        const shared = {
          ...its,
          placeholder,
          value: draft[name],
          onChange: (event: { target: { value: string } }) => change({ [name]: event.target.value }),
        };
        if (name === "title") return <input {...shared} />;
        return (
          <textarea {...shared} rows={2} className={`${its.className} ${name === "origins" ? "font-mono" : ""}`} />
        );
      }}
    </LabelledField>
  );
}

/** A checkbox with its label and a sentence about it. */
export function Check(props: {
  label: string;
  about?: string;
  isOn: boolean;
  isOff?: boolean;
  onChange: (isOn: boolean) => void;
}) {
  const about = useId();
  return (
    <div>
      <label className="flex min-h-6 items-center gap-2">
        <input
          type="checkbox"
          checked={props.isOn}
          disabled={props.isOff}
          aria-describedby={props.about ? about : undefined}
          onChange={(event) => props.onChange(event.target.checked)}
        />
        {props.label}
      </label>
      {props.about ? (
        <p id={about} className="ml-6 text-xs text-ink-faint">
          {props.about}
        </p>
      ) : null}
    </div>
  );
}
