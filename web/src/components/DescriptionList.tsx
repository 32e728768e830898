import type { ReactNode } from "react";

/** Named facts about one thing. Values that are undefined, null or empty are left out. */
export function DescriptionList(props: { facts: Readonly<Record<string, ReactNode>> }) {
  return (
    <dl className="grid grid-cols-[minmax(7rem,max-content)_1fr] gap-x-6 gap-y-1.5">
      {Object.entries(props.facts)
        .filter(([, value]) => value !== null && value !== undefined && value !== "")
        .map(([name, value]) => (
          <div key={name} className="col-span-2 grid grid-cols-subgrid">
            <dt className="text-ink-faint">{name}</dt>
            <dd className="min-w-0 wrap-anywhere">{value}</dd>
          </div>
        ))}
    </dl>
  );
}

/** A section of a page with its heading. */
export function PageSection(props: { title: string; about?: string; actions?: ReactNode; children: ReactNode }) {
  return (
    <section className="mt-8 first:mt-0">
      <div className="mb-2 flex flex-wrap items-center gap-3">
        <h2 className="font-semibold">{props.title}</h2>
        {props.actions ? <div className="ml-auto flex flex-wrap gap-2">{props.actions}</div> : null}
      </div>
      {props.about ? <p className="-mt-1 mb-2 max-w-2xl text-ink-soft">{props.about}</p> : null}
      {props.children}
    </section>
  );
}

export function Card(props: { children: ReactNode }) {
  return <div className="rounded-lg border border-line bg-surface p-4">{props.children}</div>;
}
