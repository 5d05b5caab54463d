// What the dashboard's JSON has to be, by Grafana's published types. Those are of builders: an enumeration is a string in JSON, and what is left open for any
// data source and any panel is here Prometheus' query and the time series' options.

import type * as sdk from '@grafana/grafana-foundation-sdk/dashboard';
import type * as prometheus from '@grafana/grafana-foundation-sdk/prometheus';
import type * as timeseries from '@grafana/grafana-foundation-sdk/timeseries';

type Written<T> = T extends string ? (string extends T ? string : `${T}`)
  : T extends (infer E)[] ? Written<E>[]
  : T extends object ? { [K in keyof T]: Written<T[K]> }
  : T;

type Target = Omit<Written<prometheus.Dataquery>, '_implementsDataqueryVariant'>;
type Defaults = Omit<Written<sdk.FieldConfig>, 'custom'> & { custom?: Written<timeseries.FieldConfig> };
type Panel = Omit<Written<sdk.Panel>, 'type' | 'targets' | 'options' | 'fieldConfig'> & {
  type: 'timeseries';
  targets: Target[];
  options?: Written<timeseries.Options>;
  fieldConfig?: Omit<Written<sdk.FieldConfigSource>, 'defaults'> & { defaults: Defaults };
};
type Row = Omit<Written<sdk.RowPanel>, 'type'> & { type: 'row' };
export type Dashboard = Omit<Written<sdk.Dashboard>, 'panels'> & { panels: (Panel | Row)[] };
