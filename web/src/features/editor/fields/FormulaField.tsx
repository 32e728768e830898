/** Formula fields: completion, evaluation with sample values, and an enlarged view for long templates. */

import { Braces, FlaskConical, Maximize2, Plus, X } from "lucide-react";
import { DropdownMenu } from "radix-ui";
import { lazy, type RefObject, Suspense, useContext, useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import type { JsonObject } from "@/api/views";
import { Button } from "@/components/Button";
import { Dialog } from "@/components/Dialog";
import { IconButton } from "@/components/IconButton";
import { templateVariable } from "@/forms/code/completion";
import type { FormulaProps } from "@/forms/code/FormulaEditor";
import type { FormulaSyntax } from "../document/shapes";
import { LocalizedText } from "./boxes";
import { ConditionBuilder } from "./ConditionBuilder";
import type { BoxProps } from "./fieldContext";
import { InsertTargetContext, useForm } from "./fieldContext";

const FormulaEditor = lazy(() => import("@/forms/code/FormulaEditor"));
const TryFormula = lazy(() => import("@/forms/code/TryFormula"));

/** A single formula. */
export function Formula(props: FormulaProps) {
  return (
    <Suspense
      fallback={
        <pre
          data-coming
          className="min-h-8 rounded-md border border-line-strong p-1.5 font-mono text-xs whitespace-pre-wrap"
        >
          {props.value}
        </pre>
      }
    >
      <FormulaEditor {...props} />
    </Suspense>
  );
}

/** Fields with a placeholder, which is `hint.<field>`. */
const HINTED: ReadonlySet<string> = new Set(["prompt", "message", "items", "expression"]);

export function FormulaText(box: BoxProps & { spelled: FormulaSyntax }) {
  const { t } = useTranslation();
  const { known } = useForm();
  const [isTried, setTried] = useState(false);
  const [isLarge, setLarge] = useState(false);
  const inserter = useRef<((text: string) => void) | null>(null);
  const offer = useContext(InsertTargetContext);
  const isTemplate = box.spelled === "template";
  const field = box.at.slice(box.at.lastIndexOf("/") + 1);
  if (box.value !== null && typeof box.value === "object") return <LocalizedText {...box} isLong={isTemplate} />;
  const text = box.value === undefined || box.value === null ? "" : String(box.value);
  const editor = {
    value: text,
    onChange: (next: string) => box.onChange(next === "" ? undefined : next),
    spelled: box.spelled,
    known,
    labelledBy: box.labelledBy,
    describedBy: box.describedBy,
    hint: HINTED.has(field) ? t(`hint.${field}`) : undefined,
    isWrong: box.isWrong,
  };
  const insert = (path: string) => inserter.current?.(isTemplate ? templateVariable(path, known) : path);
  const isCondition = box.spelled === "condition" || field === "expression";
  return (
    <>
      {isCondition ? <ConditionBuilder text={text} onChange={editor.onChange} /> : null}
      {isLarge ? (
        <pre className="max-h-24 overflow-hidden rounded-md border border-line p-1.5 font-mono text-xs whitespace-pre-wrap text-ink-faint">
          {text}
        </pre>
      ) : (
        <div onFocusCapture={() => offer?.({ name: box.name, insert })}>
          <Formula {...editor} inserter={inserter} />
        </div>
      )}
      <div className="mt-0.5 flex gap-1">
        {isTemplate ? <Variables inserter={inserter} /> : null}
        {box.spelled === "path" ? null : (
          <Small icon={FlaskConical} name={t("formula.try")} isOn={isTried} onClick={() => setTried(!isTried)} />
        )}
        {isTemplate ? <Small icon={Maximize2} name={t("formula.enlarge")} onClick={() => setLarge(true)} /> : null}
      </div>
      {isTried ? <Trial text={text} spelled={box.spelled} /> : null}
      {isLarge ? (
        <Dialog open wide onClose={() => setLarge(false)} title={box.name} about={t("formula.enlargeAbout")}>
          <div className="h-[46vh]">
            <Formula {...editor} isTall inserter={inserter} />
          </div>
          <div className="mt-1">
            <Variables inserter={inserter} />
          </div>
          <Trial text={text} spelled={box.spelled} />
        </Dialog>
      ) : null}
    </>
  );
}

function Trial({ text, spelled }: { text: string; spelled: FormulaSyntax }) {
  const { known, sample } = useForm();
  const [values, setValues] = useState<JsonObject | null>();
  useEffect(() => {
    let isOver = false;
    void sample().then((found) => isOver || setValues(found));
    return () => {
      isOver = true;
    };
  }, [sample]);
  if (values === undefined) return null;
  return (
    <Suspense>
      <TryFormula text={text} spelled={spelled} known={known} sample={values} />
    </Suspense>
  );
}

function Small(props: { icon: typeof X; name: string; isOn?: boolean; onClick: () => void }) {
  return (
    <Button
      kind="quiet"
      className="h-6 px-1.5 text-xs aria-pressed:bg-accent-soft aria-pressed:text-accent"
      {...(props.isOn === undefined ? {} : { "aria-pressed": props.isOn })}
      onClick={props.onClick}
    >
      <props.icon className="size-3.5" aria-hidden /> {props.name}
    </Button>
  );
}

/** Menu of names that can be inserted into the text. */
function Variables({ inserter }: { inserter: RefObject<((text: string) => void) | null> }) {
  const { t } = useTranslation();
  const { known } = useForm();
  const descriptionOf = (about: string) => (about.includes(" ") ? about : t(`variable.${about}`, { defaultValue: "" }));
  const names = known.names.flatMap((one) =>
    one.name === "nodes"
      ? one.members.map((node) => ({
          ...node,
          name: /^\w+$/.test(node.name) ? `nodes.${node.name}` : `nodes["${node.name}"]`,
        }))
      : one.name === "state" || one.name === "execution" || one.name === "config"
        ? []
        : [one],
  );
  return (
    <DropdownMenu.Root modal={false}>
      <DropdownMenu.Trigger asChild>
        <Button kind="quiet" className="h-6 px-1.5 text-xs">
          <Braces className="size-3.5" aria-hidden /> {t("formula.variables")}
        </Button>
      </DropdownMenu.Trigger>
      <DropdownMenu.Portal>
        <DropdownMenu.Content
          align="start"
          onCloseAutoFocus={(event) => event.preventDefault()}
          className="z-[60] max-h-80 min-w-56 overflow-auto rounded-md border border-line bg-raised p-1 shadow-lg"
        >
          {[...new Map(names.map((one) => [one.name, one])).values()].map((one) => (
            <DropdownMenu.Item
              key={one.name}
              onSelect={() => inserter.current?.(templateVariable(one.name, known))}
              className="flex min-h-7 cursor-pointer items-center gap-3 rounded px-2 font-mono text-xs outline-none data-highlighted:bg-accent-soft"
            >
              <span className="flex-1">{one.name}</span>
              <span className="max-w-48 truncate font-sans text-ink-faint">
                {one.label || descriptionOf(one.about) || one.type}
              </span>
            </DropdownMenu.Item>
          ))}
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  );
}

/** An ordered list of formulas. */
export function Formulas(box: BoxProps & { spelled: FormulaSyntax }) {
  const { t } = useTranslation();
  const { known } = useForm();
  const all = Array.isArray(box.value) ? box.value.map(String) : [];
  const change = (next: string[]) => box.onChange(next.length > 0 ? next : undefined);
  return (
    <div className="space-y-1">
      {all.map((text, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: entries have no identity besides their index
        <div key={at} className="flex items-start gap-1">
          <div className="min-w-0 flex-1">
            <Formula
              value={text}
              onChange={(next) => change(all.with(at, next))}
              spelled={box.spelled}
              known={known}
              labelledBy={box.labelledBy}
            />
          </div>
          <IconButton
            icon={X}
            name={t("editor.takeOut", { name: at + 1 })}
            onClick={() => change(all.toSpliced(at, 1))}
          />
        </div>
      ))}
      <Button kind="quiet" className="h-6 px-2 text-xs" onClick={() => change([...all, ""])}>
        <Plus className="size-3" /> {t("editor.add")}
      </Button>
    </div>
  );
}
