import { type ReactNode, useId } from "react";

export const BOX = "w-full rounded-md border border-line-strong bg-surface px-2 py-1.5";

/** A field with its label, description and error. The children attach the accessibility attributes to the input. */
export function LabelledField(props: {
  name: string;
  about?: string | undefined;
  error?: ReactNode;
  required?: boolean;
  children: (its: {
    id: string;
    className: string;
    "aria-describedby": string | undefined;
    "aria-invalid": boolean;
    required: boolean;
  }) => ReactNode;
}) {
  const id = useId();
  const descriptionIds = [props.error ? `${id}-wrong` : "", props.about ? `${id}-about` : ""].filter(Boolean).join(" ");
  return (
    <div>
      <label htmlFor={id} className="mb-0.5 block font-medium">
        {props.name}
        {props.required ? (
          <span aria-hidden className="text-failed">
            {" "}
            *
          </span>
        ) : null}
      </label>
      {props.children({
        id,
        className: BOX,
        "aria-describedby": descriptionIds || undefined,
        "aria-invalid": Boolean(props.error),
        required: props.required === true,
      })}
      {props.error ? (
        <div id={`${id}-wrong`} role="alert" className="mt-0.5 text-sm text-failed">
          {props.error}
        </div>
      ) : null}
      {props.about ? (
        <p id={`${id}-about`} className="mt-0.5 text-xs text-ink-faint">
          {props.about}
        </p>
      ) : null}
    </div>
  );
}
