// A search block that tells its facets which block they are in, and the store which facets it has.
import { createContext, useEffect, useLayoutEffect, useMemo } from 'react';
import { flushSync } from 'react-dom';
import { useDispatch, useSelector } from 'react-redux';
import Chips from './page/Chips';
import { allValues } from './page/data';
import {
  COUNTED_WIDGETS,
  TREE_WIDGET,
  countedIndexes,
  facetsOfBlock,
  indexOf,
  withSeparateNames,
} from './facets';

export const SearchBlockContext = createContext({});

// Before the effect of the listing inside, which asks for the hits.  Nothing is asked for on the server.
const useEarlyEffect = __CLIENT__ ? useLayoutEffect : useEffect;

/** Returns the search block `Block` with counts; the editor's, `isEdit`, saves its data, which stay as they are. */
const withFacetCounts = (Block, isEdit = false) => {
  const SearchBlock = (props) => {
    const { data } = props;
    const id = props.id || props.block;
    const dispatch = useDispatch();
    const names = JSON.stringify(countedIndexes(data));
    useEarlyEffect(() => {
      dispatch(facetsOfBlock(id, JSON.parse(names)));
    }, [dispatch, id, names]);
    const shown = useMemo(
      () => (isEdit ? data : withSeparateNames(data)),
      [data],
    );
    const query = data?.query?.query;
    const block = useMemo(() => ({ id, query }), [id, query]);
    return (
      <SearchBlockContext.Provider value={block}>
        <Block {...props} data={shown} />
      </SearchBlockContext.Provider>
    );
  };
  return SearchBlock;
};

export default withFacetCounts;

const YEAR = /^\d{4}$/;

/** Returns the chosen values of `facet` that have chips: a year with chosen months has none, as on the search page. */
const withChip = (facet, values) =>
  facet.type === TREE_WIDGET
    ? values.filter(
        (value) =>
          !YEAR.test(value) ||
          !values.some((other) => other.startsWith(`${value}-`)),
      )
    : values;

/** Returns the chips of a search block with the properties of Volto's layouts; `trees` are facets of years, months and places. */
export const chipsOf = ({ data, facets, querystring, trees, set }) =>
  (data.facets || [])
    .filter(({ field }) => field)
    .flatMap((facet) => {
      const name = facet.field.value;
      const values = [facets[name] || []].flat();
      const titles = querystring?.indexes?.[name]?.values || {};
      const offered = allValues(trees.filter((t) => t.name === indexOf(facet)));
      const titleOf = (value) =>
        offered.find(([, each]) => each.value === value)?.[1].title ||
        titles[value]?.title ||
        value;
      return withChip(facet, values).map((value) => ({
        title: facet.title ?? facet.field.label,
        value: titleOf(value),
        onClick: () => {
          const others = values.filter(
            // Without a place, places inside of it have gone, too.
            (each) => each !== value && !each.startsWith(`${value}/`),
          );
          set({
            ...facets,
            [name]: Array.isArray(facets[name]) ? others : '',
          });
        },
      }));
    });

/** Returns the layout of search blocks with chips above the hits, which replace Volto's list where they show all of it. */
export const withChips = (Layout) => {
  const LayoutWithChips = (props) => {
    const { children, data, id, isEditMode } = props;
    const answer = useSelector((state) => state.pgcatalogFacets?.[id]);
    const kinds = [...COUNTED_WIDGETS, TREE_WIDGET];
    const hasChips =
      !isEditMode &&
      Boolean(answer?.counts || answer?.trees.length) &&
      data.facets.every(({ type }) => kinds.includes(type || 'selectFacet'));
    const set = (next) =>
      flushSync(() => {
        props.setFacets(next);
        props.onTriggerSearch(props.searchedText || '', next);
      });
    return (
      <div className={`pgcatalog-block${hasChips ? ' has-chips' : ''}`}>
        <Layout {...props}>
          {hasChips && (
            <Chips
              all={{ onClick: () => set({}) }}
              chips={chipsOf({ ...props, trees: answer.trees, set })}
              id={`pgcatalog-chosen-${id}`}
            />
          )}
          {children}
        </Layout>
      </div>
    );
  };
  return LayoutWithChips;
};
