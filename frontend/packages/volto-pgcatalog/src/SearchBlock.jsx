// A search block that tells its facets which block they are in, and the store which facets it has.
import { createContext, useEffect, useLayoutEffect } from 'react';
import { useDispatch } from 'react-redux';
import { countedIndexes, facetsOfBlock } from './facets';

export const SearchBlockContext = createContext({});

// Before the effect of the listing inside, which asks for the hits.  Nothing is asked for on the server.
const useEarlyEffect = __CLIENT__ ? useLayoutEffect : useEffect;

const withFacetCounts = (Block) => {
  const SearchBlock = (props) => {
    const { data } = props;
    const id = props.id || props.block;
    const dispatch = useDispatch();
    const names = JSON.stringify(countedIndexes(data));
    useEarlyEffect(() => {
      dispatch(facetsOfBlock(id, JSON.parse(names)));
    }, [dispatch, id, names]);
    return (
      <SearchBlockContext.Provider value={{ id, query: data?.query?.query }}>
        <Block {...props} />
      </SearchBlockContext.Provider>
    );
  };
  return SearchBlock;
};

export default withFacetCounts;
